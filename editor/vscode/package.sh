#!/bin/sh
# Writes tscript.vsix beside this file, or to the path given: a zip of the extension with the two lists that its
# installer reads. Needs Node.js 20 or newer and `zip`; npm fetches what package-lock.json names, once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/tscript.vsix}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$here"
[ -d node_modules ] || npm ci --silent --no-audit --no-fund
npm run --silent bundle -- --log-level=warning
field() { node -p "require('./package.json').$1"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/extension"
cp -R package.json language-configuration.json README.md syntaxes snippets dist "$work/extension/"
cp ../../LICENSE "$work/extension/LICENSE.txt"
cat ../../CHANGELOG.md > "$work/extension/CHANGELOG.md"

cat > "$work/[Content_Types].xml" <<'XML'
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".cjs" ContentType="application/javascript"/>
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".md" ContentType="text/markdown"/>
  <Default Extension=".txt" ContentType="text/plain"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
XML

cat > "$work/extension.vsixmanifest" <<XML
<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="$(field name)" Version="$(field version)" Publisher="$(field publisher)"/>
    <DisplayName>$(field displayName)</DisplayName>
    <Description xml:space="preserve">$(field description)</Description>
    <Categories>$(field 'categories.join(",")')</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="$(field engines.vscode)"/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Changelog" Path="extension/CHANGELOG.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
XML

rm -f "$out"
cd "$work"
zip -q -X -r "$out" '[Content_Types].xml' extension.vsixmanifest extension
echo "$out"
