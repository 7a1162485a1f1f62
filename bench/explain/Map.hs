import qualified Data.Map.Strict as M
import Data.List (foldl')
import System.Environment (getArgs)

main :: IO ()
main = do
  [n] <- map read <$> getArgs
  let m = foldl' (\a i -> M.insertWith (+) (i * 7919 `mod` 50021) i a) M.empty [1 .. n :: Int]
  print (M.foldl' (+) 0 m, M.size m)
