import { fileURLToPath } from 'node:url'

/** Arguments of Node for a process that loads TypeScript as the tests do: for what is as well with any loader. */
export const LOADER: readonly string[] =
  process.env.TEST_LOADER === 'tsx'
    ? ['--import', import.meta.resolve('tsx')]
    : ['--require', fileURLToPath(new URL('./typescript/register.cjs', import.meta.url))]
