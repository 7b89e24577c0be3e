"""Energies read off trees and sums of trees."""
