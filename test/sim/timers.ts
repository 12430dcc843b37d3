/** Stands in for `node:timers/promises` in the source, with the clock of the world. */
export function setTimeout<Value>(delayMs?: number, value?: Value): Promise<Value> {
  return new Promise((resolve) => void globalThis.setTimeout(resolve, delayMs, value as Value))
}

export function setImmediate<Value>(value?: Value): Promise<Value> {
  return new Promise((resolve) => void globalThis.setImmediate(resolve, value as Value))
}
