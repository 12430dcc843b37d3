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
/** How many deliveries may start in an interval: `first` after a rest, when the load is unknown. */
const perInterval = { least: 1, first: 25, most: 1_000 }
const faster = 2
/**
 * Clients come first while the event loop is used for more than this share of its time and more
 * requests arrive than this, so that it is not the deliveries that keep it busy.
 */
const busy = { utilization: 0.5, requestsPerS: 100 }
/** The deliveries while clients come first: this share of their requests. */
const leastShare = 0.05

/**
 * Opens a pace. While the event loop is busy, deliveries get a small share of it; when there is
 * room again, they speed up step by step.
 */
export function openPace({ countRequests, onFree }: PaceOptions): Pace {
  let allowed = perInterval.first
  let left = allowed
  let isBusy = false
  let isRefused = false
  let timer: NodeJS.Timeout | undefined
  let requestsBefore = 0
  let loopBefore = performance.eventLoopUtilization()
  let takenAt = 0

  function measure(): void {
    const came = countRequests() - requestsBefore
    const { utilization } = performance.eventLoopUtilization(loopBefore)
    isBusy = utilization > busy.utilization && came * (1000 / intervalMs) > busy.requestsPerS
    allowed = isBusy
      ? Math.max(perInterval.least, came * leastShare)
      : Math.min(allowed * faster, perInterval.most)
    // At rest nothing is measured.
    const isIdle = performance.now() - takenAt > intervalMs && !isBusy
    if (isIdle) allowed = perInterval.first
    left = Math.ceil(allowed)
    timer = undefined
    if (!isIdle) start()
    if (isRefused) {
      isRefused = false
      onFree()
    }
  }

  function start(): void {
    requestsBefore = countRequests()
    loopBefore = performance.eventLoopUtilization()
    timer = setTimeout(measure, intervalMs).unref()
  }

  return {
    take() {
      takenAt = performance.now()
      if (timer === undefined) start()
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
