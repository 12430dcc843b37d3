export type { PlantStoreOptions } from './options.ts'
export { PlantStore } from './plant-store.ts'
export { PlantStoreError, PositionGoneError } from './plant-store-error.ts'
export type * from './types.ts'
