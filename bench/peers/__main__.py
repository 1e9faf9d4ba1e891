"""python -m bench.peers"""

from bench.peers import main
from bench.report import program

program(main)
