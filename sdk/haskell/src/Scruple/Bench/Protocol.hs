{-# OPTIONS_GHC -O2 #-}
{-# LANGUAGE ExistentialQuantification #-}
{-# LANGUAGE ScopedTypeVariables #-}

-- | The bench protocol, version 1: cases are listed, and requests are answered.
module Scruple.Bench.Protocol (Suite (..), Case (..), TellStall, Work (..), scruple, wholeName) where

import Control.Concurrent (rtsSupportsBoundThreads)
import Control.Exception
import Control.Monad
import Data.IORef
import Data.List (intercalate, sort)
import Data.Maybe (fromMaybe, isJust)
import Data.Version (showVersion)
import Foreign.C.String (CString)
import Foreign.C.Types (CInt (..))
import Foreign.Marshal.Array (withArray0)
import Foreign.Marshal.Utils (withMany)
import Foreign.Ptr (Ptr, nullPtr)
import GHC.Arr (Array, bounds, elems, inRange, listArray, (!))
import GHC.Environment (getFullArgs)
import GHC.IO.Handle.FD (fdToHandle)
import GHC.Stats (getRTSStatsEnabled)
import System.Environment (getExecutablePath, lookupEnv, setEnv, unsetEnv)
import System.Exit (ExitCode (..), exitWith)
import System.IO
import System.IO.Error (isEOFError)
import System.Info (compilerName, fullCompilerVersion)
import System.Mem (performMajorGC)
import System.Posix.Internals (c_safe_open, o_RDONLY, o_WRONLY, setCloseOnExec, withFilePath)

import Scruple.Bench.Body
import Scruple.Bench.Json
import Scruple.Bench.Measure

-- | Cases, in groups, with their properties and their setup.
data Suite
  = Leaf Case
  | Group String [Suite]
  | Adjust (Case -> Case) Suite
  | forall e. Env (IO e) (e -> IO ()) (e -> Suite)

data Case = Case
  { caseName :: String
  , caseGroup :: Maybe String -- If it is not the name up to its last slash. Of a leaf without a group around it, any value means none.
  , caseShape :: Maybe String
  , caseTiming :: Maybe Timing
  , caseParams :: [(String, JSON)]
  , caseThroughput :: Maybe (String, Double)
  , caseThreads :: [Int]
  , caseBudgets :: [(String, [(String, JSON)])]
  , caseTags :: [String]
  , caseFresh :: Bool
  , caseFirst :: Bool
  , caseOwnInputs :: Bool
  , caseMaxIterations :: Maybe Int
  , caseTimeLimit :: Maybe Int
  , caseChecked :: Bool
  , caseSource :: Maybe String
  , caseReadings :: [Counter]
  , caseConcurrency :: Maybe [(String, JSON)]
  , caseWork :: Work
  }

-- | The operations of a case.
data Work
  = forall b. Plain (Body b)
  | Special
      { specialBatch :: TellStall -> Bool -> Int -> Maybe Int -> IO Batch -- ^ The tare?, iterations, threads.
      , specialOnce :: TellStall -> IO [(String, JSON)]
      }

-- | Tells Scruple that the threads of a case make no progress, with the fields of the reply.
type TellStall = [(String, JSON)] -> IO ()

foreign import ccall unsafe "execvp" c_execvp :: CString -> Ptr CString -> IO CInt
foreign import ccall unsafe "_exit" c_exit :: CInt -> IO ()

-- | Declares the cases and answers Scruple until it sends @bye@.
scruple :: [Suite] -> IO ()
scruple suites = do
  requests <- lookupEnv "SCRUPLE_BENCH_IN"
  replies <- lookupEnv "SCRUPLE_BENCH_OUT"
  case (requests, replies) of
    (Just i, Just o) -> do
      hIn <- open "SCRUPLE_BENCH_IN" i o_RDONLY
      hOut <- open "SCRUPLE_BENCH_OUT" o o_WRONLY
      hSetBuffering hOut (BlockBuffering Nothing)
      mapM_ unsetEnv ["SCRUPLE_BENCH_IN", "SCRUPLE_BENCH_OUT"]
      entries <- concat <$> mapM (flatten [] id) suites
      refuseDuplicates entries
      inNewThread (serve hIn hOut (numbered entries))
    (Nothing, Nothing) -> byHand
    _ -> sayAndEnd "only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set; Scruple sets both"

-- Processes that cases start inherit neither the host's descriptors nor ours.
open :: String -> FilePath -> CInt -> IO Handle
open variable path flags = do
  fd <- withFilePath path (\p -> c_safe_open p flags 0)
  when (fd < 0) (sayAndEnd (variable ++ ": cannot open " ++ path))
  setCloseOnExec fd
  case splitAt 8 path of
    ("/dev/fd/", digits) | Just given <- number digits -> setCloseOnExec (fromIntegral given)
    _ -> return ()
  h <- fdToHandle fd
  mkTextEncoding "UTF-8//ROUNDTRIP" >>= hSetEncoding h
  hSetNewlineMode h noNewlineTranslation
  return h

-- If the program was started by hand, Scruple replaces it and starts it again.
byHand :: IO ()
byHand = do
  again <- lookupEnv "SCRUPLE_BENCH_HAND"
  self <- getExecutablePath
  args <- getFullArgs
  let line = ["scruple", "bench", "--", self] ++ args
  unless (isJust again) $ do
    setEnv "SCRUPLE_BENCH_HAND" "1"
    mapM_ hFlush [stdout, stderr]
    void (withMany withFilePath line (\ps -> withArray0 nullPtr ps (c_execvp (head ps))))
  sayAndEnd ("this is a bench program; run it with: " ++ unwords line)

sayAndEnd :: String -> IO a
sayAndEnd text = hPutStrLn stderr text >> exitWith (ExitFailure 2)

refuseDuplicates :: [Entry] -> IO ()
refuseDuplicates entries = case [a | (a, b) <- zip keys (drop 1 keys), a == b] of
  (name, params) : _ -> sayAndEnd ("two cases have the same name and parameters: " ++ show name ++ " " ++ params)
  [] -> return ()
  where keys = sort [(caseName c, render (JObj (caseParams c)) "") | Entry { entryCase = c } <- entries]

serve :: Handle -> Handle -> Array Int Entry -> IO ()
serve hIn hOut entries = loop
  where
    loop = request hIn >>= maybe (closeAll entries) (answer . splitOn ' ')
    say reply = hPutStr hOut (render reply "\n")
    tellStall k fields = say (JObj (("stalled", JInt k) : fields)) >> hFlush hOut
    answer line = case line of
      ["bye"] -> closeAll entries >> say (JObj [("bye", JBool True)]) >> hFlush hOut
      ["cases"] -> do
        forM_ (zip [0 ..] (elems entries)) (\(k, e) -> say (JObj [("case", caseJSON k (entryCase e))]))
        say (JObj [("end", JStr "cases"), ("count", JInt (length (elems entries)))])
        hFlush hOut >> loop
      _ -> do
        (reply, fatal) <- carryOut tellStall entries line
        say reply
        hFlush hOut
        if fatal then c_exit 1 else loop

-- A line without a line end is half a request, and is ignored.
request :: Handle -> IO (Maybe String)
request h = go []
  where
    go seen = try (hGetChar h) >>= \c -> case c of
      Right '\n' -> return (Just (reverse seen))
      Right x -> go (x : seen)
      Left e | isEOFError e -> return Nothing
             | otherwise -> throwIO e

carryOut :: (Int -> TellStall) -> Array Int Entry -> [String] -> IO (JSON, Bool)
carryOut tellStall entries line = do
  at <- newIORef Nothing
  outcome <- try (perform tellStall entries at line >>= \reply -> evaluate (length (render reply "")) >> return reply)
  case outcome of
    Right reply -> return (reply, False)
    Left e | Just UserInterrupt <- fromException e -> throwIO e
    Left e -> do
      k <- readIORef at
      let ident = [("id", JInt n) | Just n <- [k]]
      case fromException e of
        Just (Refusal kind text fatal more) ->
          return (JObj ([("error", JStr text), ("kind", JStr kind)] ++ ident ++ more
            ++ [("fatal", JBool True) | fatal]), fatal)
        Nothing -> do
          text <- describe e
          return (JObj ([("error", JStr text), ("kind", JStr "exception")] ++ ident), False)

perform :: (Int -> TellStall) -> Array Int Entry -> IORef (Maybe Int) -> [String] -> IO JSON
perform tellStall entries at line = case line of
  ["hello", v] | Just _ <- number v -> hello
  "block" : ws@(_ : _) -> do
    batches <- mapM (parseBatch entries at) ws
    opened <- forM batches $ \(k, tare, n, count) -> do
      writeIORef at (Just k)
      work <- entryOpen (entries ! k)
      return (k, tare, n, count, work)
    collectBefore [entries ! k | (k, _, _, _) <- batches]
    rows <- forM opened $ \(k, tare, n, count, work) -> do
      writeIORef at (Just k)
      Batch row lost <- case work of
        Plain body -> plainBatch body tare n count
        Special { specialBatch = batch } -> batch (tellStall k) tare n count
      return (JObj ([("id", JInt k), ("kind", JStr (if tare then "t" else "c"))] ++ row), lost)
    return (JObj [("block", JArr (map fst rows)), ("lost", JInt (sum (map snd rows)))])
  ["once", w] -> do
    k <- known entries at w
    work <- entryOpen (entries ! k)
    collectBefore [entries ! k]
    row <- case work of
      Plain body -> plainOnce body
      Special { specialOnce = once } -> once (tellStall k)
    return (JObj (("once", JInt k) : row))
  ["reset", w] -> do
    k <- known entries at w
    entryClose (entries ! k)
    _ <- entryOpen (entries ! k)
    return (JObj [("reset", JInt k)])
  _ -> throwIO (refusal "request" ("unknown request: " ++ take 200 (unwords line)))

-- Before the first batch of a case a collection runs, so that it starts as in a new process. Later batches do
-- not collect: otherwise short batches would never contain a collection, which is part of the cost.
collectBefore :: [Entry] -> IO ()
collectBefore asked = do
  news <- filterM (readIORef . entryNew) asked
  mapM_ (`writeIORef` False) (map entryNew news)
  unless (null news) performMajorGC

parseBatch :: Array Int Entry -> IORef (Maybe Int) -> String -> IO (Int, Bool, Int, Maybe Int)
parseBatch entries at word = case splitOn ':' word of
  [i, kind, n] -> parsed i kind n Nothing
  [i, kind, n, t] -> maybe malformed (parsed i kind n . Just) (positive t)
  _ -> malformed
  where
    malformed = throwIO (refusal "request" ("not a batch: " ++ take 200 word))
    positive w = number w >>= \v -> if v > 0 then Just v else Nothing
    parsed i kind n t
      | kind `elem` ["c", "t"], Just iterations <- positive n, Just _ <- number i = do
          k <- known entries at i
          let most = caseMaxIterations (entryCase (entries ! k))
          when (maybe False (< iterations) most) $
            throwIO (refusal "request" ("at most " ++ show (fromMaybe 0 most) ++ " iterations are allowed"))
          return (k, kind == "t", iterations, t)
      | otherwise = malformed

known :: Array Int Entry -> IORef (Maybe Int) -> String -> IO Int
known entries at w = case number w of
  Just k | inRange (bounds entries) k -> writeIORef at (Just k) >> return k
         | otherwise -> writeIORef at (Just k) >> throwIO (refusal "unknown-case" ("there is no case " ++ w))
  Nothing -> throwIO (refusal "request" ("not a case: " ++ take 200 w))

hello :: IO JSON
hello = do
  timed <- getRTSStatsEnabled
  present <- counters
  clocks <- clocksJSON
  return $ JObj
    [ ("scruple", JInt 1), ("sdk", JStr "scruple-haskell 0.1.0"), ("language", JStr "haskell")
    , ("runtime", JStr (compilerName ++ " " ++ showVersion fullCompilerVersion))
    , ("clocks", clocks)
    , ("features", JArr (map JStr (["threads" | rtsSupportsBoundThreads] ++ ["queues"])))
    , ("counters", JArr (map counterJSON present))
    , ("absent", JObj [("gc.time", JStr "needs -T: link with -with-rtsopts=-T or set GHCRTS=-T") | not timed]) ]

closeAll :: Array Int Entry -> IO ()
closeAll entries = forM_ (elems entries) $ \e ->
  try (entryClose e) >>= either (\x -> describe x >>= hPutStrLn stderr . ("teardown: " ++)) return

-- An exception's message may itself be endless or throw.
describe :: SomeException -> IO String
describe e = do
  text <- try (let s = take 2000 (displayException e) in evaluate (length s) >> return s)
  return (either (\(_ :: SomeException) -> "an exception whose message throws") id text)

data Entry = Entry { entryCase :: Case, entryOpen :: IO Work, entryClose :: IO (), entryNew :: IORef Bool }

-- | Takes the name of a case as a whole: slashes in it do not divide groups.
wholeName :: Suite -> Suite
wholeName (Leaf c) | '/' `elem` caseName c = Leaf c { caseGroup = Just "" }
wholeName suite = suite

flatten :: [String] -> (Case -> Case) -> Suite -> IO [Entry]
flatten path change suite = case suite of
  Leaf c -> do
    let within = intercalate "/" . reverse
        ofPath = if null path then "" <$ caseGroup c else Just (within path)
        c' = change c { caseName = within (caseName c : path), caseGroup = ofPath }
    new <- newIORef True
    return [Entry c' (return (caseWork c')) (return ()) new]
  Group name suites -> concat <$> mapM (flatten (if null name then path else name : path) change) suites
  Adjust f below -> flatten path (change . f) below
  Env make free body -> do
    made <- newIORef Nothing
    let realise = readIORef made >>= \m -> case m of
          Just (_, entries) -> return entries
          Nothing -> do
            e <- make
            below <- flatten path change (body e)
            let entries = numbered below
            writeIORef made (Just (free e, entries))
            return entries
        close = readIORef made >>= \m -> case m of
          Nothing -> return ()
          Just (freeIt, entries) -> writeIORef made Nothing >> (mapM_ entryClose (elems entries) `finally` freeIt)
    listed <- try $ do
      entries <- flatten path change (body absentEnv)
      mapM_ (\e -> evaluate (length (render (caseJSON 0 (entryCase e)) ""))) entries
      return entries
    entries <- case listed of
      Right entries -> return entries
      Left (_ :: SomeException) -> elems <$> realise
    return [ e { entryOpen = realise >>= \real -> entryOpen (real ! k), entryClose = close }
           | (k, e) <- zip [0 ..] entries ]

absentEnv :: e
absentEnv = error "a case was listed by looking into an environment that is not made yet: use a lazy pattern"

numbered :: [a] -> Array Int a
numbered xs = listArray (0, length xs - 1) xs

caseJSON :: Int -> Case -> JSON
caseJSON k c = JObj $
  [("id", JInt k), ("name", JStr (caseName c))]
    ++ [("group", JStr g) | Just g <- [caseGroup c]]
    ++ [("shape", JStr s) | Just s <- [caseShape c]]
    ++ [("timing", JStr (timingWord t)) | Just t <- [caseTiming c]]
    ++ [("params", JObj (caseParams c)) | not (null (caseParams c))]
    ++ [("throughput", JObj [("unit", JStr u), ("amount", JNum n)]) | Just (u, n) <- [caseThroughput c]]
    ++ [("threads", JArr (map JInt (caseThreads c))) | caseThreads c /= [1], rtsSupportsBoundThreads]
    ++ [("budgets", JObj [(key, JObj limits) | (key, limits) <- caseBudgets c]) | not (null (caseBudgets c))]
    ++ [("tags", JArr (map JStr (caseTags c))) | not (null (caseTags c))]
    ++ [("fresh", JBool True) | caseFresh c]
    ++ [("first", JBool True) | caseFirst c]
    ++ [("per_iteration_input", JBool True) | caseOwnInputs c]
    ++ [("max_iterations", JInt n) | Just n <- [caseMaxIterations c]]
    ++ [("time_limit", JInt n) | Just n <- [caseTimeLimit c]]
    ++ [("checked", JBool True) | caseChecked c]
    ++ [("source", JStr s) | Just s <- [caseSource c]]
    ++ [("concurrency", JObj o) | Just o <- [caseConcurrency c]]
    ++ [("readings", JArr (map counterJSON (caseReadings c))) | not (null (caseReadings c))]

