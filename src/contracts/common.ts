// What the contracts of several tools have in common.

/** A value in the primary, a promise in a lane: always await it. */
export type Awaitable<T> = T | Promise<T>

/** The user of a tool: a plugin, or the runtime itself under the tool's own name. */
export interface Owner {
  /** `<domain>.<ClassName>` for a plugin. It is the `emitter`, `subscriber` and `identity` of everything that the plugin does. */
  readonly name: string
  /** The plugin's instance, which is `this` in its handlers; undefined until it is constructed. */
  instance: object | undefined
  /** Set for `domain.ts` and `app.ts`: they register hooks alone. */
  readonly hooksOf?: 'domain' | 'application'
}

/**
 * The interface that schema libraries have in common.
 * Source: Standard Schema specification v1, https://standardschema.dev
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output }
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[]
}
