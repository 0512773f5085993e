"""Python imports this in every process of a sampled run, whose path of modules begins here."""

from benchmarks.sampling import begin

begin()
