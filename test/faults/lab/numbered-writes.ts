import assert from 'node:assert/strict'
import { releaseAfterTest } from '../../support/release.ts'
import { call } from '../../support/wire.ts'
import type { Received } from '../../webhooks/test-receiver.ts'
import { token } from './service-process.ts'

/** Writers that replace plants again and again, with a number that grows for each plant. */
export interface NumberedWrites {
  /** How many writes were acknowledged. */
  count(): number
  stop(): Promise<void>
  /** What a receiver of every type has got of the acknowledged writes. */
  judge(received: readonly Received[]): Judgement
}

export interface Judgement {
  /** Acknowledged writes that never arrived. */
  readonly lost: number
  /** Changes that arrived for the first time after a later one of the same plant. */
  readonly misplaced: number
  /** Arrivals beyond the first of each change. */
  readonly repeated: number
}

const pauseMs = 5

/** Starts to write to plants of their own each. `url` is asked for before each write. */
export function startNumberedWrites(url: () => string, writers = 6): NumberedWrites {
  const acknowledged = new Map<string, number[]>()
  let isStopped = false
  const running = Array.from({ length: writers }, (_, index) => write(index + 1))

  releaseAfterTest(() => {
    isStopped = true
  })

  async function write(writer: number): Promise<void> {
    for (let number = 1; !isStopped; number++) {
      const plant = String(writer * 10 + (number % 3))
      const answer = await call(url(), {
        method: 'PUT',
        path: `/plants/${plant}`,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: `{"name":"${number}"}`,
      }).catch(() => undefined)
      if (answer?.status === 200 || answer?.status === 201) {
        const numbers = acknowledged.get(plant) ?? []
        acknowledged.set(plant, numbers)
        numbers.push(number)
      } else assert.ok(answer === undefined || answer.status >= 500, `answered ${answer?.status}`)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  return {
    count: () => [...acknowledged.values()].reduce((sum, numbers) => sum + numbers.length, 0),

    async stop() {
      isStopped = true
      await Promise.all(running)
    },

    judge(received) {
      const byPlant = Map.groupBy(received, ({ plantId }) => plantId)
      let lost = 0
      let misplaced = 0
      for (const [plant, numbers] of acknowledged) {
        const arrived = byPlant.get(plant)?.map(({ body }) => Number(JSON.parse(body).name)) ?? []
        const known = new Set(arrived)
        const firsts = [...known]
        lost += numbers.filter((number) => !known.has(number)).length
        misplaced += firsts.filter((number, index) => number < (firsts[index - 1] ?? 0)).length
      }
      const repeated = received.length - new Set(received.map(({ id }) => id)).size
      return { lost, misplaced, repeated }
    },
  }
}
