// Renders what pymdownx.arithmatex marked; runs again when the theme swaps the page in place.
(function () {
  function render() {
    document.querySelectorAll(".arithmatex").forEach(function (node) {
      renderMathInElement(node, {
        delimiters: [
          { left: "\\(", right: "\\)", display: false },
          { left: "\\[", right: "\\]", display: true },
        ],
        throwOnError: false,
      });
    });
  }
  if (window.document$) window.document$.subscribe(render);
  else document.addEventListener("DOMContentLoaded", render);
})();
