{-# OPTIONS_GHC -O2 #-}

-- | For suites written for the package gauge: import this module instead of @Gauge@ or @Gauge.Main@.
module Scruple.Gauge
  ( defaultMain, defaultMainWith, defaultConfig
  , Benchmark, Benchmarkable, toBenchmarkable, bench, bgroup
  , nf, whnf, nfIO, whnfIO, nfAppIO, whnfAppIO
  , env, envWithCleanup, perBatchEnv, perBatchEnvWithCleanup, perRunEnv, perRunEnvWithCleanup
  ) where

import Scruple.Criterion
import Scruple.Criterion.Types (toBenchmarkable)
