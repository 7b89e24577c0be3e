"""Claims about supervised learning: lines, margins, kernels, neighbours, trees and committees."""
