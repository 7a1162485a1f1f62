# Counts the lines and calls that a Ruby program executes, by calling context.
#
# Ruby requires this file before the program, because RUBYOPT names it. Each process writes one file into this file's
# folder at its end.

# What the counted program redefines must not change this: names and digests are made by a process of their own.
module ScrupleCount
  FOLDER = __dir__
  # A context: cost, function, edges by function, parent. An edge: the context to which it leads, calls.
  COST, FUNCTION, EDGES, PARENT = 0, 1, 2, 3
  TO, CALLS = 0, 1
  ROOT = [0, nil, {}, nil]
  CONTEXTS = []
  # With more contexts than this, recursion leads back to the function's context, whoever calls it: functions that call
  # each other have as many paths as there are orders of their calls.
  MOST_BY_CALL = 100_000
  # A function: its kind, path, line and number, and of methods the class and name.
  FUNCTIONS = []
  NUMBER = 3
  # The program may define methods like `hash` for all objects, so keys are what Ruby compares itself: methods by class,
  # name and line, other code by path and line.
  METHODS = {}.compare_by_identity
  BLOCKS = {}
  FILES = {}
  STACK = :__scruple_stack
  # The program may change both.
  MAIN = $0.dup
  FOLDERS = [File.dirname(MAIN), *$LOAD_PATH].map { |path| File.expand_path(path.to_s) + "/" }

  class << self
    def function(places, line, kind, path, owner = nil, name = nil)
      places[line] ||= [kind, path, line, FUNCTIONS.size, owner, name].tap { |function| FUNCTIONS << function }
    end

    def method(trace, path)
      owner, name = trace.defined_class, trace.method_id
      places = (METHODS[owner] ||= {})
      function(places[name] ||= {}, trace.lineno, :method, path, owner, name)
    end

    def edge_to(parent, function)
      parent[EDGES][function[NUMBER]] ||= [destination(parent, function), 0]
    end

    # The context to which a new edge leads. A recursive call leads back to a context that the same function has called,
    # so that its cost is apart from that of the outer call.
    def destination(parent, function)
      kind, number = function[0], function[NUMBER]
      any_caller = kind == :top || CONTEXTS.size >= MOST_BY_CALL
      above = parent
      until above.equal?(ROOT)
        if above[FUNCTION] == number && (any_caller || above[PARENT][FUNCTION] == parent[FUNCTION])
          return above
        end
        above = above[PARENT]
      end
      context = [0, number, {}, parent]
      CONTEXTS << context
      context
    end

    # Each fiber has a stack of its own, and so has each thread.
    def stack
      Thread.current[STACK] ||= [[ROOT, nil]]
    end

    def enter(stack, function, path)
      parent = stack.last[0]
      edge = edge_to(parent, function)
      edge[CALLS] += 1
      edge[TO][COST] += 1
      stack << [edge[TO], path]
    end

    def internal?(path)
      path.start_with?("<internal:") || path == __FILE__
    end

    # The context of code outside all methods and blocks: the program's own, or that of a file which it loads.
    def top(parent, path)
      edge = edge_to(parent, function(FILES[path] ||= {}, 0, :top, path))
      edge[CALLS] = 1
      edge[TO]
    end

    def count(trace)
      stack = self.stack
      case trace.event
      when :line
        around, path = stack.last
        line_path = trace.path
        unless line_path == path || internal?(line_path)
          # The first line of a file that is loaded, or of the program itself.
          around = top(around, line_path)
          stack[-1] = [around, line_path]
        end
        around[COST] += 1
      when :c_call
        # What a built-in method calls belongs to who called the built-in method.
        around = stack.last[0]
        around[COST] += 1
        stack << [around, nil]
      when :call, :b_call
        path = trace.path
        if internal?(path)
          # Part of Ruby itself, like methods that are written in C.
          stack.last[0][COST] += 1
          stack << [stack.last[0], path]
        else
          called = trace.event == :call ? method(trace, path)
                                        : function(BLOCKS[path] ||= {}, trace.lineno, :block, path)
          enter(stack, called, path)
        end
      else
        stack.pop if stack.size > 1
      end
    end

    # Each function as its kind, path, line and, of a method, its name with its class.
    def functions
      FUNCTIONS.map { |kind, path, line, _, owner, name| [kind, path, line, name && "#{class_name(owner)}#{name}"] }
    end

    def class_name(of)
      return "" if Object.equal?(of) || Kernel.equal?(of)
      name = Module.instance_method(:inspect).bind_call(of).gsub(/:0x\h+/, "")
      name.start_with?("#<Class:") ? "#{name.delete_prefix("#<Class:").delete_suffix(">")}." : "#{name}#"
    end

    def running
      File.join(FOLDER, "#{Process.pid}.running")
    end

    def start
      File.write(running, "")
      at_exit { write }
      @trace = TracePoint.new(:line, :call, :return, :b_call, :b_return, :c_call, :c_return) { |trace| count(trace) }
      @trace.enable
    end

    def forked
      [ROOT, *CONTEXTS].each do |context|
        context[COST] = 0
        context[EDGES].each_value { |edge| edge[CALLS] = 0 }
      end
      File.write(running, "")
    end

    def write
      @trace.disable
      number = {}.compare_by_identity
      CONTEXTS.each_with_index { |context, index| number[context] = index + 1 }
      path = File.join(FOLDER, "#{Process.pid}.calls")
      File.open("#{path}.new", "w") do |file|
        file.write("scruple-calls 2 0 #{CONTEXTS.size < MOST_BY_CALL ? 1 : 0}\n", names)
        CONTEXTS.each do |context|
          file.write("c\t#{number[context[PARENT]] || 0}\t#{context[FUNCTION]}\t#{context[COST]}\n")
        end
        [ROOT, *CONTEXTS].each_with_index do |context, from|
          context[EDGES].each_value { |to, calls| file.write("e\t#{from}\t#{number[to]}\t#{calls}\n") }
        end
        file.write("end\n")
      end
      File.rename("#{path}.new", path)
      File.delete(running)
    end

    def names
      words = ["/proc/self/exe", "--disable=gems,rubyopt", __FILE__]
      IO.popen(words, "r+b") do |other|
        other.write(Marshal.dump([MAIN, FOLDERS, functions]))
        other.close_write
        other.read
      end
    end
  end

  # Ruby forks by this method from 3.1 on.
  module Forks
    def _fork
      child = super
      ScrupleCount.forked if child == 0
      child
    end
  end
end

# The names and digests of functions, of which a counting process knows where they are.
class ScrupleNames
  def initialize(main, folders)
    @main, @folders = main, folders
    @files = Hash.new { |files, path| files[path] = pieces(path) }
  end

  # The line about a function. Two blocks of one line count as one.
  def line(kind, path, line, label)
    found = @files[path][kind][line]&.uniq || []
    named = found.select { |name, _| label&.end_with?(name) }
    found = named unless named.empty?
    digest = found.map(&:last).reduce(0) { |all, one| all ^ one }
    label ||= path == @main ? "<main>" : "<file #{module_of(path)}>" if kind == :top
    label ||= found.empty? ? "block" : found.first.first
    "f\t#{digest.to_s(16)}\t#{text(module_of(path))}\t#{text(label)}\n"
  end

  private

  # What the code does: without its name, its place, and code that is defined in it.
  def digest(code)
    type, locals, parameters, catches, body = code[9..13]
    words = body.reject { |word| word.is_a?(Integer) }.map { |word| plain(word) }
    value = 0xCBF29CE484222325
    [type, locals, parameters, plain(catches), words].inspect.each_byte do |byte|
      value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    end
    value
  end

  def plain(word)
    return word unless word.is_a?(Array)
    return :code if code?(word)
    word.map { |part| plain(part) }
  end

  def code?(word)
    word.is_a?(Array) && word.first == "YARVInstructionSequence/SimpleDataFormat"
  end

  # The name and digest of each piece of code in a file, by kind and line.
  def pieces(path)
    found = { method: {}, block: {}, top: {} }
    return found unless File.file?(path)
    walk(RubyVM::InstructionSequence.compile_file(path).to_a, found)
    found
  rescue SyntaxError, SystemCallError
    found
  end

  def walk(code, found)
    label, line, type = code[5], code[8], code[9]
    kind = { method: :method, block: :block, top: :top, main: :top }[type]
    (found[kind][kind == :top ? 0 : line] ||= []) << [label, digest(code)] if kind
    inner(code, found)
  end

  def inner(word, found)
    word.each { |part| code?(part) ? walk(part, found) : inner(part, found) if part.is_a?(Array) }
  end

  def module_of(path)
    return "__main__" if path == @main
    whole = File.expand_path(path)
    found = @folders.find { |folder| whole.start_with?(folder) }
    found ? whole.delete_prefix(found) : path
  end

  def text(word)
    word.to_s.dup.force_encoding("UTF-8").scrub.dump[1..-2]
  end
end

if $0 == __FILE__
  main, folders, functions = Marshal.load($stdin.binmode.read)
  names = ScrupleNames.new(main, folders)
  functions.each { |function| $stdout.write(names.line(*function)) }
elsif RUBY_ENGINE == "ruby" && Process.respond_to?(:_fork)
  Process.singleton_class.prepend(ScrupleCount::Forks)
  ScrupleCount.start
end
