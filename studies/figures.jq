# What the column `measured` of published.csv is written with. The input is what the run printed with --json; $arm and
# $metric are the columns of these names, $run that of the run, and $runs has all runs of the study by name.

def named($name): first($runs[$run].arms[] | select(.name == $name)) // error("no arm is called ‘\($name)’");
def the_arm: named($arm);

# A metric of an arm; one that is absent ends the row with its reason.
def metric_of($name; $key):
  named($name).metrics[$key]
  | if . == null then error("‘\($name)’ has no \($key)") elif .absent then error(.absent) else . end;

# The estimate with its interval, also of another arm. What varies and has no interval only points somewhere.
def value_of($name):
  metric_of($name; $metric)
  | if .interval == null and .quality == "noisy" then {pointing: .estimate, why: "\(.n) readings are too few"} else {estimate, interval} end;
def value: value_of($arm);

# The time of a case net of its tare, in nanoseconds: an estimate, a bound, or an interval alone.
def net_of($name):
  metric_of($name; "time.wall").net
  | if .below_resolution != null then {below: .below_resolution} elif .unknown then {interval} else {estimate, interval} end;
def net: net_of($arm);

# A figure times a number, and one divided by another (the intervals crosswise, which is wide enough).
def figure: if type == "object" then . else {estimate: .} end;
def times($factor):
  figure
  | with_entries(if (.value | type) == "array" then .value |= map(. * $factor) elif (.value | type) == "number" then .value *= $factor else . end);
def over($other):
  figure as $a | ($other | figure) as $b
  | if $a.why or $b.why then
      {pointing: (($a.estimate // $a.pointing) / ($b.estimate // $b.pointing)), why: ($a.why // $b.why)}
    elif $a.estimate == null or ($b.estimate // 0) == 0 then error("one of two figures is not known, or is nothing")
    else
      ($a.interval // [$a.estimate, $a.estimate]) as $of | ($b.interval // [$b.estimate, $b.estimate]) as $by
      | {estimate: ($a.estimate / $b.estimate),
         interval: (if $a.interval or $b.interval then [$of[0] / $by[1], $of[1] / $by[0]] else null end)}
    end;

# What is said of the arm beside the reference: divided by it, and that as a change in percent.
def effect:
  (first(.comparisons[] | select(.arm == $arm and .metric == $metric)) // error("‘\($arm)’ is not compared by \($metric)"))
  | if .effect == null then error(.why // "there is no ratio")
    elif .evidence == "absent" or (.evidence == "ranges" and .verdict == "can't tell") then
      {pointing: .effect, why: (.why // "the readings do not tell")}
    else {estimate: .effect, interval} end;
def percent:
  def change: (. - 1) * 100;
  figure
  | with_entries(if (.value | type) == "array" then .value |= map(change) elif (.value | type) == "number" then .value |= change else . end);

# The slope of what was fitted over a parameter; $arm is the family.
def slope:
  (first(.growth[] | select(.family == $arm and .metric == $metric)) // error("nothing is fitted for ‘\($arm)’"))
  | .fit | {estimate: .slope, interval: .slope_interval};

# How many cases have the same figure in another run, and how many another one.
def of_cases:
  [.arms[] | select(.role == "subject" and .metrics[$metric].estimate != null) | {key: .name, value: .metrics[$metric].estimate}]
  | from_entries;
def cases($run; same): of_cases as $a | ($runs[$run] | of_cases) as $b | [$a | keys[] | select([$a[.], $b[.]] | same)] | length;
def alike($run): cases($run; .[0] == .[1]);
def unlike($run): cases($run; .[0] != .[1]);

# From one version of a history to another, as a change in percent; $arm is the subject of the series.
def point($commit):
  ([.history.versions[] | .commit | startswith($commit)] | index(true)) as $at
  | if $at == null then error("the history has no version \($commit)") else . end
  | (first(.series[] | select(.subject == $arm and .metric == $metric)) // error("there is no series of \($metric) of ‘\($arm)’"))
  | first(.points[] | select(.version == $at)) // error("the version \($commit) has no \($metric)");
def step($old; $new):
  point($old).value as $old | point($new).value as $new
  | if $old == 0 then error("the figure before is nothing") else ($new / $old - 1) * 100 end;

# From the first version of a history to the last, as a change in percent.
def whole:
  (first(.series[] | select(.subject == $arm and .metric == $metric)) // error("there is no series of \($metric) of ‘\($arm)’")).whole
  | if . == null then error("the history has no ends to compare")
    elif .interval == null and (.surely | not) then {pointing: ((.ratio - 1) * 100), why: "too few readings"}
    else {estimate: .ratio, interval: (if .interval then [.interval.low, .interval.high] else null end)} | percent end;

# At which commits a history changes, and by how much, as text.
def changes(wanted):
  . as $h
  | [$h.series[] | select(.subject == $arm and .metric == $metric) | .changes[] | select(.ratio != null) | select(wanted)
     | "\(.ratio * 1000 | round / 1000) × at " + ([.set[] as $at | $h.history.versions[$at].commit[:7]] | join(" or "))]
  | if length == 0 then "none" else join(", ") end;
