{-# OPTIONS_GHC -O2 #-}

-- | Suites written for the package tasty-bench, with the import of this module instead of @Test.Tasty.Bench@. Baselines
-- and comparisons are Scruple's affair: 'bcompare' declares its case, and the comparison is @scruple bench --reference@.
module Scruple.TastyBench
  ( defaultMain, Benchmark, Benchmarkable, bench, bgroup, bcompare, bcompareWithin
  , nf, whnf, nfIO, whnfIO, nfAppIO, whnfAppIO
  , env, envWithCleanup
  ) where

import Scruple.Criterion

-- | The text is a pattern of tasty, and has no effect.
bcompare :: String -> Benchmark -> Benchmark
bcompare _ = id

bcompareWithin :: Double -> Double -> String -> Benchmark -> Benchmark
bcompareWithin _ _ _ = id
