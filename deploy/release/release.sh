#!/usr/bin/env bash
# Checks what is about to be released, from a clean clone with the whole npm registry in reach:
#   deploy/release/release.sh [FOLDER]     FOLDER gets the software bill of materials, default `release`
# Stops at the first fault. Publishes nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-release}

[[ -z $(git status --porcelain) ]] || { echo 'There are changes that are not committed.' >&2; exit 1; }

# Every package of every platform is named by its hash, so that `npm ci` refuses another one.
node deploy/release/complete-lock.mjs
[[ -z $(git status --porcelain package-lock.json) ]] || { echo 'package-lock.json was completed: commit it first.' >&2; exit 1; }

npm ci
# The registry has signed each package, and where a package has a provenance statement it is valid.
npm audit signatures
npm audit --omit=dev --audit-level=high
npm run check
# Five times as many broken requests as usual.
FUZZ_CONNECTIONS=10000 npm run test:all

# Every package with version, hash and licence; those that only the development needs are marked. CycloneDX 1.5: https://cyclonedx.org
# Not with --omit=dev: npm 11 then leaves out packages that both need, such as @opentelemetry/api.
mkdir -p "$folder"
npm sbom --sbom-format=cyclonedx >"$folder/sbom.cdx.json"
echo "The bill of materials is $folder/sbom.cdx.json."
