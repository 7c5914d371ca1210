#!/bin/sh
# Writes tscript.vsix beside this file, or to the path given: a zip of the extension with the two lists that its
# installer reads. Needs `zip` and nothing from the network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/tscript.vsix}
case $out in /*) ;; *) out=$PWD/$out ;; esac
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$here/package.json")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/extension/syntaxes"
cp "$here/package.json" "$here/language-configuration.json" "$here/README.md" "$work/extension/"
cp "$here/syntaxes/tscript.tmLanguage.json" "$work/extension/syntaxes/"

cat > "$work/[Content_Types].xml" <<'XML'
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".md" ContentType="text/markdown"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
XML

cat > "$work/extension.vsixmanifest" <<XML
<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="tscript" Version="$version" Publisher="tscript"/>
    <DisplayName>tscript</DisplayName>
    <Description xml:space="preserve">Colors, brackets and indentation for tscript: Rhai with tensors</Description>
    <Categories>Programming Languages</Categories>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="^1.75.0"/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
XML

rm -f "$out"
cd "$work"
zip -q -X -r "$out" '[Content_Types].xml' extension.vsixmanifest extension
echo "$out"
