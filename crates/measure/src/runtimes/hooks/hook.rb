# Reads the counters of Ruby's collector as the process exits. Nothing here may make a program fail.
begin
  $LOADED_FEATURES.frozen? # a frozen list means that no further code may be loaded
  module ScrupleRuntimeHook
    BASE = { pid: Process.pid, stat: nil }
    FOLDER = __dir__
    GC::Profiler.enable
    GC.measure_total_time = true if GC.respond_to?(:measure_total_time=)

    def self.slot_bytes
      return nil unless GC.respond_to?(:stat_heap)
      GC.stat_heap.each_value.sum { |heap| heap[:slot_size] * heap.fetch(:total_allocated_objects) }
    rescue KeyError
      nil
    end

    def self.answer
      now = GC.stat
      base = BASE[:stat] || {}
      lines = { pid: Process.pid, version: RUBY_VERSION, forked: BASE[:stat] ? 1 : 0 }
      lines[:unknown_start] = 1 if Process.pid != BASE[:pid]
      %i[count minor_gc_count major_gc_count total_allocated_objects].each do |key|
        lines[key] = now[key] - (base[key] || 0)
      end
      lines[:heap_allocated_pages] = now[:heap_allocated_pages]
      lines[:heap_live_slots] = now[:heap_live_slots]
      size = GC::INTERNAL_CONSTANTS
      lines[:slot_size] = size[:RVALUE_SIZE] || size[:BASE_SLOT_SIZE] || 40
      lines[:page_size] = size[:HEAP_PAGE_SIZE] || 16_384
      bytes = BASE[:stat] ? nil : slot_bytes
      lines[:slot_bytes] = bytes if bytes
      lines[:gc_ns] = GC.total_time - (BASE[:ns] || 0) if GC.respond_to?(:total_time)
      pauses = GC::Profiler.raw_data.map { |collection| collection[:GC_TIME] }
      lines[:longest] = pauses.max || 0
      text = lines.map { |key, value| "#{key}=#{value}\n" }.join
      File.write("#{FOLDER}/ruby-#{Process.pid}-#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}.txt", text)
    rescue Exception # rubocop:disable Lint/RescueException
      nil # no answer is an answer: the reader says that none came
    end

    # A forked child inherits its parent's counts; what it began with is taken off.
    if Process.respond_to?(:_fork)
      module Forked
        def _fork
          child = super
          if child.zero?
            BASE[:pid] = Process.pid
            BASE[:stat] = GC.stat
            BASE[:ns] = GC.total_time if GC.respond_to?(:total_time)
            GC::Profiler.clear
          end
          child
        end
      end
      Process.singleton_class.prepend(Forked)
    end
  end
  at_exit { ScrupleRuntimeHook.answer }
rescue Exception # rubocop:disable Lint/RescueException
  nil
end
