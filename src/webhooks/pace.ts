/** Lets deliveries wait while requests of clients keep the process busy. */
export interface Pace {
  /** Takes the right to start one delivery. After a refusal, `onFree` is called later. */
  take(): boolean
  close(): void
}

export interface PaceOptions {
  /** How many requests of clients this process has received so far. */
  readonly countRequests: () => number
  readonly onFree: () => void
}

const intervalMs = 100
/** Above this share of its time the event loop has no room left. */
const busyUtilization = 0.9
/** With fewer requests per second than this, only the deliveries themselves keep it busy. */
const fewRequests = 100
/** The fewest deliveries while it is busy: this share of the requests. */
const leastShare = 0.05
const leastPerInterval = 1
const mostPerInterval = 2_000
const slower = 0.5
const faster = 1.5

/**
 * Builds a pace. Deliveries give way when the event loop has no time left, down to a small share
 * of the requests, and speed up again when there is room.
 */
export function buildPace({ countRequests, onFree }: PaceOptions): Pace {
  let perInterval = mostPerInterval
  let left = mostPerInterval
  let isRefused = false
  let timer: NodeJS.Timeout | undefined
  let requestsBefore = 0
  let loopBefore = performance.eventLoopUtilization()
  let takenAt = 0

  function measure(): void {
    const requests = countRequests()
    const loop = performance.eventLoopUtilization()
    const came = requests - requestsBefore
    const { utilization } = performance.eventLoopUtilization(loop, loopBefore)
    const isBusy = utilization > busyUtilization && came * (1000 / intervalMs) > fewRequests
    const least = Math.max(leastPerInterval, came * leastShare)
    perInterval = isBusy
      ? Math.max(perInterval * slower, least)
      : Math.min(perInterval * faster, mostPerInterval)
    requestsBefore = requests
    loopBefore = loop
    left = Math.ceil(perInterval)
    // At rest nothing is measured.
    const isIdle = performance.now() - takenAt > intervalMs && perInterval === mostPerInterval
    timer = isIdle ? undefined : setTimeout(measure, intervalMs).unref()
    if (isRefused) {
      isRefused = false
      onFree()
    }
  }

  return {
    take() {
      takenAt = performance.now()
      if (timer === undefined) {
        requestsBefore = countRequests()
        loopBefore = performance.eventLoopUtilization()
        timer = setTimeout(measure, intervalMs).unref()
      }
      if (left > 0) {
        left--
        return true
      }
      isRefused = true
      return false
    },
    close: () => clearTimeout(timer),
  }
}
