-- | What md5sum prints of its standard input, by the package pureMD5.
module Main (main) where

import qualified Data.ByteString.Lazy as Lazy
import Data.Digest.Pure.MD5 (md5)

main :: IO ()
main = Lazy.getContents >>= \content -> putStrLn (show (md5 content) ++ "  -")
