{-# OPTIONS_GHC -O2 #-}

-- | What suites import from @Criterion.Main.Options@, for programs that build their mode themselves. A mode has no effect:
-- all benchmarks are declared, and @scruple bench --filter@ selects among them. There is no 'parseWith', since Scruple's
-- command line has options of its own.
module Scruple.Criterion.Options (Mode (..), MatchType (..), defaultConfig, runMode) where

import Data.Int (Int64)

import Scruple.Bench (scruple)
import Scruple.Criterion.Types

data MatchType = Prefix | Glob | Pattern | IPattern
  deriving (Eq, Ord, Bounded, Enum, Read, Show)

data Mode
  = List
  | Version
  | RunIters Config Int64 MatchType [String]
  | Run Config MatchType [String]
  deriving (Eq, Read, Show)

-- | Declares the benchmarks, whatever the mode selects.
runMode :: Mode -> [Benchmark] -> IO ()
runMode _ = scruple
