import type { Awaitable } from './awaitable.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/**
 * What a handler may return: on a route with a `response` schema a value whose JSON has that shape, the envelope of a failure, undefined
 * after `redirect` and `sendBinary` and for a status without a body, or what is streamed. Otherwise anything.
 */
export type RouteAnswer<Options> = Options extends { response: infer Schema extends StandardSchemaV1 }
  ? Awaitable<
      JsonSource<NonNullable<Schema['~standard']['types']>['input']> | Failure | AsyncIterable<unknown> | undefined
    >
  : unknown

interface Failure {
  success: boolean
  error: string
}

/**
 * A value that becomes this in JSON. What a literal or an enum may be is left to the check at run time: the type that TypeScript infers for
 * the `success: true` of a method is `boolean`.
 */
type JsonSource<Json> = 0 extends 1 & Json
  ? Json
  : unknown extends Json
    ? Json
    : Json extends string
      ? string | { toJSON(): string }
      : Json extends number
        ? number
        : Json extends boolean
          ? boolean
          : Json extends object
            ? { [Key in keyof Json]: JsonSource<Json[Key]> | (IsOptional<Json, Key> extends true ? undefined : never) }
            : Json

type IsOptional<Json, Key extends keyof Json> = Partial<Pick<Json, Key>> extends Pick<Json, Key> ? true : false
