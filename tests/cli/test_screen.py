"""What a terminal shows of what the library logs."""

from __future__ import annotations

import logging

import pytest

from groundstate.cli.screen import Screen


def test_a_terminal_shows_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    screen, logger = Screen(), logging.getLogger("groundstate.compile")
    level = logging.getLogger("groundstate").level
    screen.live = True
    with screen.stages() as stage:
        stage("fitting")
        logger.info("compiling the loops of %s", "trees")
    logger.info("nobody watches")
    assert "compiling the loops of trees" in capsys.readouterr().err
    assert logging.getLogger("groundstate").level == level
    screen.live = False
    with screen.stages():
        logger.info("in a pipe")
    assert not capsys.readouterr().err
