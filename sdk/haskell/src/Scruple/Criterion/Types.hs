{-# OPTIONS_GHC -O2 #-}

-- | The names of @Criterion.Types@.
module Scruple.Criterion.Types
  ( Benchmark, Benchmarkable, toBenchmarkable, Config (..), Verbosity (..), defaultConfig
  ) where

import Data.Int (Int64)

import Scruple.Bench (Body, Suite, repeatedly)

type Benchmark = Suite

type Benchmarkable = Body ()

toBenchmarkable :: (Int64 -> IO ()) -> Benchmarkable
toBenchmarkable loop = repeatedly (loop . fromIntegral)

-- | The fields are criterion's; 'confInterval' is a plain number here.
data Config = Config
  { confInterval :: Double
  , timeLimit :: Double
  , resamples :: Int
  , regressions :: [([String], String)]
  , rawDataFile, reportFile, csvFile, jsonFile, junitFile :: Maybe FilePath
  , verbosity :: Verbosity
  , template :: FilePath
  } deriving (Eq, Show, Read)

data Verbosity = Quiet | Normal | Verbose
  deriving (Eq, Ord, Bounded, Enum, Show, Read)

defaultConfig :: Config
defaultConfig = Config 0.95 5 1000 [] Nothing Nothing Nothing Nothing Nothing Normal "default"
