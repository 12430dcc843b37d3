/** Lets deliveries wait while requests of clients keep the process busy. */
export interface Pace {
  /** Takes the right to start one delivery. After a refusal, `onFree` is called later. */
  take(): boolean
  /** Whether requests of clients come first. */
  isBusy(): boolean
  close(): void
}

export interface PaceOptions {
  /** How many requests of clients this process has received so far. */
  readonly countRequests: () => number
  readonly onFree: () => void
}

const intervalMs = 50
/** Above this share of its time, the event loop is for the requests of clients. */
const busyUtilization = 0.5
/** With fewer requests per second than this, only the deliveries themselves keep it busy. */
const fewRequests = 100
/** The deliveries while it is busy: this share of the requests. */
const leastShare = 0.05
const leastPerInterval = 1
const mostPerInterval = 1_000
/** After a rest nobody knows yet how busy the process will be. */
const firstPerInterval = 25
const faster = 2

/**
 * Builds a pace. While the event loop is busy, deliveries get a small share of it; when there is
 * room again, they speed up step by step.
 */
export function buildPace({ countRequests, onFree }: PaceOptions): Pace {
  let perInterval = firstPerInterval
  let left = firstPerInterval
  let isBusy = false
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
    isBusy = utilization > busyUtilization && came * (1000 / intervalMs) > fewRequests
    const least = Math.max(leastPerInterval, came * leastShare)
    perInterval = isBusy ? least : Math.min(perInterval * faster, mostPerInterval)
    requestsBefore = requests
    loopBefore = loop
    left = Math.ceil(perInterval)
    // At rest nothing is measured.
    const isIdle = performance.now() - takenAt > intervalMs && !isBusy
    if (isIdle) perInterval = firstPerInterval
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
    isBusy: () => isBusy,
    close: () => clearTimeout(timer),
  }
}
