# Reads the counters of Ruby's collector when the process exits. Nothing here may make a program fail.
begin
  $LOADED_FEATURES.frozen? # a frozen list means that no further code may be loaded
  module ScrupleRuntimeHook
    BASE = { pid: Process.pid, stat: nil }
    FOLDER = __dir__
    FULL = File.exist?("#{__dir__}/full-gc")
    require 'objspace' if FULL
    GC::Profiler.enable
    GC.measure_total_time = true if GC.respond_to?(:measure_total_time=)

    # Live data, if requested: after a collection, if a quarter of the heap has been allocated since the last reading,
    # the whole heap is collected and measured. A finaliser runs when a collection has ended.
    module Live
      @most = 0
      @seen = 0

      def self.look
        GC.start(full_mark: true, immediate_mark: true, immediate_sweep: true)
        @most = [@most, ObjectSpace.memsize_of_all].max
        @seen = GC.stat(:total_allocated_objects)
      end

      def self.arm
        ObjectSpace.define_finalizer(Object.new, proc do
          grown = GC.stat(:total_allocated_objects) - @seen
          look if grown > [20_000, GC.stat(:heap_live_slots) / 4].max
          arm unless @over
        end)
      end

      def self.finish
        @over = true
        look
        @most
      end
    end

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
      lines[:live] = Live.finish if FULL
      lines[:gc_ns] = GC.total_time - (BASE[:ns] || 0) if GC.respond_to?(:total_time)
      pauses = GC::Profiler.raw_data.map { |collection| collection[:GC_TIME] }
      lines[:longest] = pauses.max || 0
      text = lines.map { |key, value| "#{key}=#{value}\n" }.join
      File.write("#{FOLDER}/ruby-#{Process.pid}-#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}.txt", text)
    rescue Exception # rubocop:disable Lint/RescueException
      nil # the reader reports that there is no result
    end

    # A forked child inherits its parent's counts, which are subtracted.
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
  ScrupleRuntimeHook::Live.arm if ScrupleRuntimeHook::FULL
  at_exit { ScrupleRuntimeHook.answer }
rescue Exception # rubocop:disable Lint/RescueException
  nil
end
