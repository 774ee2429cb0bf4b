import { type ErrorCode, HeddleError } from './catalogue.ts'

const CODES: readonly ErrorCode[] = [
  'PACKAGE_MISSING',
  'REPLICA_ID_TAKEN',
  'DATABASE_TAKEN',
  'DATABASE_INVALID',
  'DATABASE_FOREIGN',
  'MIGRATION_MISNAMED',
]

/** A package that what was asked for needs, and nobody has installed. */
export const isPackageMissing = (error: unknown): boolean =>
  error instanceof HeddleError && error.code === 'PACKAGE_MISSING'

/** A mistake in the configuration: another start with the same would not help. */
export const isMisconfigured = (error: unknown): boolean => error instanceof HeddleError && CODES.includes(error.code)
