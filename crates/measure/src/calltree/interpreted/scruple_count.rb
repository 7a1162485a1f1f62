# Counts the lines and calls that a Ruby program executes, by calling context. `counter/ruby.c` does that; this file makes
# Ruby call it, and names the functions.
#
# Ruby requires this file before the program, because RUBYOPT names it. Each process writes one file into this file's
# folder at its end.

# What the counted program redefines must not change this: names and digests are made by a process of their own.
module ScrupleCount
  FOLDER = __dir__
  # A function: its kind, path, line, and of methods the class and name.
  FUNCTIONS = []
  # In the order of the library.
  KINDS = [:method, :block, :top]
  # The program may change both.
  MAIN = $0.dup
  FOLDERS = [File.dirname(MAIN), *$LOAD_PATH].map { |path| File.expand_path(path.to_s) + "/" }

  class << self
    # The number of a function that is new. The library calls this.
    def describe(kind, path, line, owner, name)
      FUNCTIONS << [KINDS[kind], path, line, owner, name]
      FUNCTIONS.size - 1
    end

    # Each function as its kind, path, line and, of a method, its name with its class.
    def functions
      FUNCTIONS.map { |kind, path, line, owner, name| [kind, path, line, name && "#{class_name(owner)}#{name}"] }
    end

    def class_name(of)
      return "" if Object.equal?(of) || Kernel.equal?(of)
      name = Module.instance_method(:inspect).bind_call(of).gsub(/:0x\h+/, "")
      name.start_with?("#<Class:") ? "#{name.delete_prefix("#<Class:").delete_suffix(">")}." : "#{name}#"
    end

    # A part of what the program executes is not counted.
    def counts_a_part
      @is_partial = true
    end

    def running
      File.join(FOLDER, "#{Process.pid}.running")
    end

    def start
      File.write(running, "")
      at_exit { write }
      start_counting(__FILE__)
    end

    def forked
      clear_counts
      File.write(running, "")
    end

    def write
      stop_counting
      path = File.join(FOLDER, "#{Process.pid}.calls")
      File.write("#{path}.new", "scruple-calls 2 #{@is_partial ? 1 : 0} #{folds_by_call? ? 1 : 0}\n#{names}")
      return unless append_counts("#{path}.new")
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

  # Ruby reports events to a library of the Ractor that they are in: to this one of the main Ractor only.
  module Ractors
    def new(...)
      ScrupleCount.counts_a_part if Ractor.current == Ractor.main
      super
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

# The names and digests of functions. A counting process knows where these functions are.
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
  require_relative "scruple_counter.so"
  Process.singleton_class.prepend(ScrupleCount::Forks)
  Ractor.singleton_class.prepend(ScrupleCount::Ractors)
  ScrupleCount.start
end
