(* N blocks of 24 bytes, the last 10,000 kept alive. *)
type cell = { a : int; b : int }

let () =
  let n = int_of_string Sys.argv.(1) in
  let ring = Array.make 10000 { a = 0; b = 0 } in
  for i = 0 to n - 1 do
    ring.(i mod 10000) <- Sys.opaque_identity { a = i; b = i * 2 }
  done;
  let { a; b } = ring.(7) in
  print_endline (string_of_int (a + b))
