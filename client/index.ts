export { PlantStore } from './plant-store.ts'
export { PlantStoreError, PositionGoneError } from './plant-store-error.ts'
export type { PlantStoreOptions } from './request.ts'
export type * from './types.ts'
