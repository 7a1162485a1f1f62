-- | Steps of the hash FNV-1a beside the identity, and sums of short lists. The suite is written for the package
-- criterion; under Scruple only its import differs.
module Main (main) where

import Criterion.Main
import Data.Bits (xor)
import Data.Word (Word32)

main :: IO ()
main = defaultMain
  [ bgroup "fnv"
      [ bench "id" (nf id basis), bench "fnv1" (nf fnv1 basis), bench "fnv4" (nf fnv4 basis), bench "fnv8" (nf fnv8 basis) ]
  , bgroup "sum" [ bench (show (length xs)) (nf sum xs) | xs <- [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5 :: Int]] ]
  ]

basis :: Word32
basis = 2166136261

step :: Word32 -> Word32 -> Word32
step b h = (h `xor` b) * 16777619
{-# INLINE step #-}

-- Functions of their own: inlined, they would become part of the harness's loop.
fnv1, fnv4, fnv8 :: Word32 -> Word32
fnv1 h = step 1 h
fnv4 h = step 4 (step 3 (step 2 (step 1 h)))
fnv8 h = step 8 (step 7 (step 6 (step 5 (fnv4 h))))
{-# NOINLINE fnv1 #-}
{-# NOINLINE fnv4 #-}
{-# NOINLINE fnv8 #-}
