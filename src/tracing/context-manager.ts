import { type Context, type ContextManager, ROOT_CONTEXT } from '@opentelemetry/api'
import { causality, NO_CAUSE } from '../core/causality/context.ts'
import { ContextScope, type ThreadScope } from './scope.ts'

// biome-ignore lint/suspicious/noExplicitAny: what is called takes and gives whatever it likes
type Callable = (...args: any[]) => any

/** Keeps the API's active context together with the causal context of the running code: one AsyncLocalStorage for both. */
export class CausalContextManager implements ContextManager {
  active(): Context {
    return (causality.getStore()?.trace as ThreadScope | null | undefined)?.context ?? ROOT_CONTEXT
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    context: Context,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    const cause = causality.getStore() ?? NO_CAUSE
    return causality.run({ ...cause, trace: new ContextScope(context) }, () => fn.call(thisArg as never, ...args))
  }

  bind<T>(context: Context, target: T): T {
    if (typeof target !== 'function') return target
    const manager = this
    const bound = function (this: unknown, ...args: unknown[]): unknown {
      return manager.with(context, target as Callable, this, ...args)
    }
    Object.defineProperty(bound, 'length', { configurable: true, value: target.length })
    return bound as T
  }

  enable(): this {
    return this
  }
  disable(): this {
    return this
  }
}
