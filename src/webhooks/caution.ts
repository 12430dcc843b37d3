/** Spares a receiver that is down, and this process the work. */
export interface Caution {
  /** Notes how an attempt ended. */
  note(fate: 'success' | 'failure'): void
  /** Whether a change may be sent for the first time now. After a refusal, `onTime` is called. */
  mayBegin(): boolean
  close(): void
}

/** After this many failures in a row, first attempts are made one by one, with a pause. */
const manyFailures = 16
const pauseMs = 100

export function openCaution(onTime: () => void): Caution {
  let failuresInARow = 0
  let begunAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  return {
    note(fate) {
      failuresInARow = fate === 'success' ? 0 : failuresInARow + 1
    },

    mayBegin() {
      const waitMs = begunAt + pauseMs - performance.now()
      if (failuresInARow < manyFailures || waitMs <= 0) {
        begunAt = performance.now()
        return true
      }
      clearTimeout(timer)
      timer = setTimeout(onTime, waitMs).unref()
      return false
    },

    close: () => clearTimeout(timer),
  }
}
