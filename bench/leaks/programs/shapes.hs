-- Keeps arrays of twelve words so that memory grows in a known shape: SHAPE N.
import Control.Monad
import Data.Array.Unboxed
import Data.IORef
import qualified Data.IntMap.Strict as M
import System.Environment

block :: Int -> Int -> UArray Int Int
block size i = listArray (0, size - 1) (repeat i)

main :: IO ()
main = do
  [shape, count] <- getArgs
  let n = read count :: Int
      square i = let r = round (sqrt (fromIntegral i :: Double)) in r * r == i
      keeps i = case shape of
        "leak" -> True
        "base" -> True
        "fifty" -> i `mod` 50 == 0
        "root" -> square i
        _ -> False
  kept <- newIORef M.empty
  let base = if shape == "base" then [1 .. 200000] else []
  forM_ base $ \i -> let b = block 12 i in b ! 0 `seq` modifyIORef' kept (M.insert (-i) b)
  forM_ [1 .. n] $ \i -> do
    let b = block 12 i
    b ! 0 `seq` case shape of
      "cache" -> modifyIORef' kept (M.insert (i `mod` 20000) b)
      "log" | i `elem` takeWhile (<= n) (iterate (* 2) 1) -> let large = block 8192 i in large ! 0 `seq` modifyIORef' kept (M.insert i large)
      _ | keeps i -> modifyIORef' kept (M.insert i b)
        | otherwise -> modifyIORef' kept (M.insert 0 b)
  readIORef kept >>= print . M.foldl' (\sum b -> sum + b ! 0) 0
