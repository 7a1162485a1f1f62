-- | Building a map of a million random keys. This suite also runs with the package weigh, with its import
-- changed to @Weigh@.
module Main (main) where

import qualified Data.HashMap.Strict as HashMap
import qualified Data.IntMap.Strict as IntMap
import qualified Data.Map.Strict as Map
import Data.List (foldl')
import Scruple.Weigh
import System.Random (mkStdGen, randoms)

main :: IO ()
main = mainWith $ do
  func' "Data.Map" (foldl' (\m k -> Map.insert k k m) Map.empty) keys
  func' "Data.IntMap" (foldl' (\m k -> IntMap.insert k k m) IntMap.empty) keys
  func' "Data.HashMap" (foldl' (\m k -> HashMap.insert k k m) HashMap.empty) keys
  func' "Data.Map.fromList" (Map.fromList . map (\k -> (k, k))) keys
  func' "Data.HashMap.fromList" (HashMap.fromList . map (\k -> (k, k))) keys

keys :: [Int]
keys = take 1000000 (randoms (mkStdGen 7))
