{-# OPTIONS_GHC -O2 #-}

-- | For suites written for the package tasty-bench: import this module instead of @Test.Tasty.Bench@. Scruple does
-- baselines and comparisons: 'bcompare' declares its case, and @scruple bench --reference@ compares.
module Scruple.TastyBench
  ( defaultMain, Benchmark, Benchmarkable, bench, bgroup, bcompare, bcompareWithin
  , nf, whnf, nfIO, whnfIO, nfAppIO, whnfAppIO
  , env, envWithCleanup
  ) where

import Scruple.Criterion

-- | Declares the benchmark. The pattern of tasty has no effect.
bcompare :: String -> Benchmark -> Benchmark
bcompare _ = id

bcompareWithin :: Double -> Double -> String -> Benchmark -> Benchmark
bcompareWithin _ _ _ = id
