-- | A suite that uses the names of gauge, tasty-bench and criterion's modes.
module Main (main) where

import Options.Applicative (auto, execParser, long, option, value)
import Scruple.Criterion.Options (defaultConfig, describeWith, parseWith, runMode)
import qualified Scruple.Gauge as Gauge
import Scruple.TastyBench

main :: IO ()
main = do
  (size, mode) <- execParser (describeWith ((,) <$> option auto (long "size" <> value (10 :: Int)) <*> parseWith defaultConfig))
  runMode mode (benchmarks size)

benchmarks :: Int -> [Benchmark]
benchmarks size =
  [ bgroup "tasty" [bench "sum" (nf sum [1 .. size]), bcompare "sum" (bench "length" (whnf length "abc"))]
  , Gauge.bgroup "gauge" [Gauge.bench "id" (Gauge.nf id 'c'), Gauge.bench "list" (Gauge.nf (replicate 3) 'c')]
  ]
