import { type TestContext, test } from 'node:test'

/** Tests that are given what they need, and are skipped where that is not to be had. @param make null where it cannot be had: it has skipped the test then */
export function testWith<Made>(make: (t: TestContext) => Promise<Made | null>) {
  return (name: string, run: (made: Made, t: TestContext) => Promise<void>): void => {
    void test(name, async (t) => {
      const made = await make(t)
      if (made !== null) await run(made, t)
    })
  }
}
