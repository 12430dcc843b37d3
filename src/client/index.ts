export { PlantStoreError, PositionGoneError } from './errors.ts'
export type { PlantStoreOptions } from './options.ts'
export { PlantStore } from './plant-store.ts'
export type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  EventsOptions,
  ImportOptions,
  ImportReport,
  ListOptions,
  NewPlant,
  OnConflict,
  Plant,
  PlantEvent,
  PlantState,
  Refusal,
  ReplacedPlant,
  ReplaceOptions,
  StoredPlant,
} from './types.ts'
