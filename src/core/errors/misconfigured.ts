import { type ErrorCode, HeddleError } from './catalogue.ts'

const CODES: readonly ErrorCode[] = [
  'REPLICA_ID_TAKEN',
  'DATABASE_TAKEN',
  'DATABASE_INVALID',
  'DATABASE_FOREIGN',
  'MIGRATION_MISNAMED',
]

/** A mistake in the configuration: another start with the same would not help. */
export const isMisconfigured = (error: unknown): boolean => error instanceof HeddleError && CODES.includes(error.code)
