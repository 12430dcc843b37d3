import { UnusableStore } from '../../src/store/store.ts'

/** Whether an error refuses a store in one line that says this, and shows none of the secrets. */
export const isRefusal =
  (said: RegExp, ...secrets: string[]) =>
  (error: unknown): boolean =>
    error instanceof UnusableStore &&
    said.test(error.message) &&
    ![...secrets, '\n'].some((one) => error.message.includes(one))
