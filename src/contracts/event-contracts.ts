import type { StandardSchemaV1 } from './standard-schema.ts'

/** What `domains/<domain>/events.ts` exports by default: event name → schema of its payload. */
export type EventContracts = Readonly<Record<string, StandardSchemaV1>>
