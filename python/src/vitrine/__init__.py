"""Vitrine chooses what to show, and learns from what customers take.

    Client, AsyncClient     call a decision service
    serve                   runs one
    fit, predict            choice models of tables of choices
    evaluate                what other policies would have earned
    optimize                the best assortment
    reproduce               the figures of the paper
    api                     the types that the service takes and answers
    run, binary             any other command: vitrine --help

The directory vitrine.notebooks holds notebooks, and the file vitrine.clicks a simulated log of pages and clicks.
"""

from pathlib import Path

from vitrine import api
from vitrine.attempts import Problem
from vitrine.client import AsyncClient, Client
from vitrine.command import CommandError, Service, binary, run, serve
from vitrine.workbench import Model, Result, evaluate, fit, optimize, predict, reproduce

notebooks = Path(__file__).parent / "notebooks"
clicks = Path(__file__).parent / "data" / "clicks.csv"

__all__ = [
    "AsyncClient",
    "Client",
    "CommandError",
    "Model",
    "Problem",
    "Result",
    "Service",
    "api",
    "binary",
    "clicks",
    "evaluate",
    "fit",
    "notebooks",
    "optimize",
    "predict",
    "reproduce",
    "run",
    "serve",
]
