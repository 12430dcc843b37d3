import type { TestContext } from 'node:test'
import { limits } from '../../src/contract/limits.ts'

/** Lowers a limit for the rest of the test: some are too high to be reached. */
export function lowerLimit(test: TestContext, name: keyof typeof limits, value: number): void {
  test.mock.property(limits as Record<keyof typeof limits, number>, name, value)
}
