{-# OPTIONS_GHC -O2 #-}

-- | The names of @Criterion.Main.Options@, for programs that build their mode themselves. A mode has no effect: all
-- benchmarks are declared, and @scruple bench --filter@ selects among them. The parser knows the words that name a
-- mode; Scruple's own command line sets how to measure.
module Scruple.Criterion.Options
  ( Mode (..), MatchType (..), defaultConfig, parseWith, describe, describeWith, runMode ) where

import Control.Applicative ((<|>))
import Data.Char (toLower)
import Data.Int (Int64)
import Options.Applicative
  ( Parser, ParserInfo, argument, auto, eitherReader, flag', fullDesc, header, help, helper, info, long, many, metavar, option
  , short, str, value )

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

-- | Declares all benchmarks; the mode is ignored.
runMode :: Mode -> [Benchmark] -> IO ()
runMode _ = scruple

-- | Reads a mode from the program's arguments; the configuration is passed on unchanged.
parseWith :: Config -> Parser Mode
parseWith cfg =
      flag' List (long "list" <> short 'l' <> help "List benchmarks")
  <|> flag' Version (long "version" <> help "Show version info")
  <|> RunIters cfg <$> option auto (long "iters" <> short 'n' <> metavar "ITERS" <> help "Has no effect") <*> match <*> names
  <|> Run cfg <$> match <*> names
  where
    names = many (argument str (metavar "NAME..." <> help "Has no effect: scruple bench --filter selects"))
    match = option matchType
      (long "match" <> short 'm' <> metavar "MATCH" <> value Prefix <> help "prefix, glob, pattern or ipattern; has no effect")
    matchType = eitherReader $ \word -> case map toLower word of
      "prefix" -> Right Prefix
      "glob" -> Right Glob
      "pattern" -> Right Pattern
      "ipattern" -> Right IPattern
      _ -> Left ("there is no match type \"" ++ word ++ "\": prefix, glob, pattern and ipattern are known")

-- | The parser of a program without other arguments.
describe :: Config -> ParserInfo Mode
describe = describeWith . parseWith

-- | The parser with a line of help.
describeWith :: Parser a -> ParserInfo a
describeWith parser = info (helper <*> parser) (header "Benchmarks for Scruple" <> fullDesc)
