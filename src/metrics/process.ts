import { readdirSync, readFileSync, statSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { buildHistogram, type Histogram, observe } from '../store/measures.ts'
import { type Metric, toCounter, toGauge, toHistogram } from './metric.ts'

/** How often the delay of the event loop is measured. */
const delayEveryMs = 50
const delayBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

/** Watches this process: its event loop, memory and descriptors. */
export function watchProcess() {
  const delays = buildHistogram(delayBounds)
  const stopWatching = watchEventLoop(delays)
  const startedAt = performance.timeOrigin / 1000

  return {
    collect(): Metric[] {
      const { user, system } = process.cpuUsage()
      const memory = process.memoryUsage()
      const { active } = performance.eventLoopUtilization()
      const cpuHelp = 'CPU time used, in seconds'
      return [
        toCounter('process_cpu_user_seconds_total', `${cpuHelp}: user.`, user / 1e6),
        toCounter('process_cpu_system_seconds_total', `${cpuHelp}: system.`, system / 1e6),
        toCounter('process_cpu_seconds_total', `${cpuHelp}.`, (user + system) / 1e6),
        toGauge('process_start_time_seconds', 'When the process started.', startedAt, 'max'),
        toGauge('process_resident_memory_bytes', 'Memory that the process holds.', memory.rss),
        toGauge('nodejs_heap_size_total_bytes', 'Size of the heap.', memory.heapTotal),
        toGauge('nodejs_heap_size_used_bytes', 'Used part of the heap.', memory.heapUsed),
        toGauge('nodejs_external_memory_bytes', 'Memory outside the heap.', memory.external),
        ...toDescriptors(),
        toCounter(
          'plant_store_event_loop_active_seconds_total',
          'Time in which the event loop was busy. Its rate is 1 when one core is used up.',
          active / 1000,
        ),
        toHistogram(
          'plant_store_event_loop_delay_seconds',
          'How late a timer ran, because the event loop was busy.',
          [[{}, delays]],
        ),
      ]
    },
    close: stopWatching,
  }
}

function watchEventLoop(delays: Histogram): () => void {
  let expectedAt = performance.now() + delayEveryMs
  const timer = setInterval(() => {
    const now = performance.now()
    observe(delays, Math.max(0, now - expectedAt) / 1000)
    expectedAt = now + delayEveryMs
  }, delayEveryMs).unref()
  return () => clearInterval(timer)
}

/** Sockets and files. Only Linux reports them. */
function toDescriptors(): Metric[] {
  const max = findDescriptorLimit()
  if (max === Infinity) return []
  // Linux 6.2 and later report the count as the size. Listing 20,000 takes milliseconds.
  const open = statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length
  return [
    toGauge('process_open_fds', 'Open descriptors.', open),
    toGauge('process_max_fds', 'Allowed descriptors.', max),
  ]
}

/** The soft limit of this process, which Node has raised to the hard one. Only Linux tells it. */
export function findDescriptorLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}
