export { PlantStoreError, PositionGoneError } from './errors.ts'
export type { PlantStoreOptions } from './options.ts'
export { PlantStore } from './plant-store.ts'
export type * from './types.ts'
