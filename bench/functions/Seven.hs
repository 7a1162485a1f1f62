{-# LANGUAGE CPP #-}

-- | The seven functions for Scruple, or for the module RIVAL, which has the interface of criterion.
module Main (main) where

import Data.Bits (xor, (.&.))
import Data.Word (Word32)
#ifdef RIVAL
import RIVAL
#else
import Scruple.Bench (Suite, bench, nf, scruple)

defaultMain :: [Suite] -> IO ()
defaultMain = scruple
#endif

main :: IO ()
main = defaultMain
  [ bench "loop" (nf (const (7 :: Word32)) basis)
  , bench "id" (nf id basis)
  , bench "fnv1" (nf fnv1 basis)
  , bench "fnv4" (nf fnv4 basis)
  , bench "fnv8" (nf fnv8 basis)
  , bench "us" (nf (steps 900) basis)
  , bench "ms" (nf (steps 900000) basis)
  ]

basis :: Word32
basis = 2166136261

step :: Word32 -> Word32 -> Word32
step b h = (h `xor` b) * 16777619
{-# INLINE step #-}

-- Not inlined: otherwise the compiler floats constant work out of either tool's loop.
fnv1, fnv4, fnv8 :: Word32 -> Word32
fnv1 h = step 1 h
fnv4 h = step 4 (step 3 (step 2 (step 1 h)))
fnv8 h = step 4 (step 3 (step 2 (step 1 (step 4 (step 3 (step 2 (step 1 h)))))))
{-# NOINLINE fnv1 #-}
{-# NOINLINE fnv4 #-}
{-# NOINLINE fnv8 #-}

steps :: Word32 -> Word32 -> Word32
steps n = go 0
  where
    go i h
      | i >= n = h
      | otherwise = go (i + 1) (step (i .&. 255) h)
