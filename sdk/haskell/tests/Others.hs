-- | A suite under the names of gauge, tasty-bench and criterion's modes.
module Main (main) where

import Scruple.Criterion.Options (MatchType (..), Mode (..), defaultConfig, runMode)
import qualified Scruple.Gauge as Gauge
import Scruple.TastyBench

main :: IO ()
main = runMode (Run defaultConfig Prefix [])
  [ bgroup "tasty" [bench "sum" (nf sum [1 .. 10 :: Int]), bcompare "sum" (bench "length" (whnf length "abc"))]
  , Gauge.bgroup "gauge" [Gauge.bench "id" (Gauge.nf id 'c'), Gauge.bench "list" (Gauge.nf (replicate 3) 'c')]
  ]
