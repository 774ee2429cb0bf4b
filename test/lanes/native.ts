import { fileURLToPath } from 'node:url'
import { SHIPPED } from '../support/shipped-domains.ts'

/** Plugins that await native calls, that await nothing, and that end their lane. */
export const NATIVE = [fileURLToPath(new URL('../fixtures/native', import.meta.url)), SHIPPED]
