-- | One exceeded and one kept limit: the check fails for neither.
module Main (main) where

import Scruple.Weigh

main :: IO ()
main = mainWith $ do
  validateFunc "exceeded" (\n -> sum [1 .. n]) (1000 :: Integer) (maxAllocs 24)
  validateFunc "kept" (\n -> sum [1 .. n]) (1000 :: Integer) (maxAllocs 10000000)
