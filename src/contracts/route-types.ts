// Types of a handler's data and answer, derived from its route.

import type { Awaitable, StandardSchemaV1 } from './common.ts'
import type { Data, EndpointOptions } from './http-request.ts'

/**
 * The type of a handler's `data`, derived from its route: the output of its schemas, the parameters of its path, and the claims
 * that its `authValidator` returns. Without a schema for query or body it may have any further key.
 */
export type RouteData<Path extends string, Options extends EndpointOptions> = FieldsOf<Options> &
  ParamsOf<Path, Options> &
  AuthOf<Options>

type FieldsOf<Options> = Options extends { query: StandardSchemaV1 } | { body: StandardSchemaV1 }
  ? OutputOf<Options, 'query'> & OutputOf<Options, 'body'>
  : Data

/** An output that is not an object, for example an array, is not part of `data`: it is `context.body`. */
type OutputOf<Options, Key extends string> =
  Options extends Record<Key, infer Schema extends StandardSchemaV1>
    ? AsFields<NonNullable<Schema['~standard']['types']>['output']>
    : unknown
type AsFields<Output> = Output extends readonly unknown[] ? unknown : Output extends object ? Output : unknown

type ParamsOf<Path extends string, Options> = Options extends { params: StandardSchemaV1 }
  ? OutputOf<Options, 'params'>
  : { [Name in ParamNames<Path>]: string }

type ParamNames<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? ParamName<Segment> | ParamNames<Rest>
  : ParamName<Path>
type ParamName<Segment extends string> = Segment extends `:${infer Name}` ? Name : Segment extends '*' ? '*' : never

type AuthOf<Options> = Options extends { authValidator: (token: string) => infer Claims }
  ? { _auth: NonNullable<Awaited<Claims>> }
  : unknown

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
