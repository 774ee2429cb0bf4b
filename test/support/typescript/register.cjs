// Tests load TypeScript as the service does. A service that one starts sizes its thread pool by itself, and a test may want it otherwise.
require('../../../src/preload/heddle-name.cjs')
require('../../../src/preload/typescript/register.cjs').register()
